"""A study put right: results amended, files verified, damaged ones recovered."""
