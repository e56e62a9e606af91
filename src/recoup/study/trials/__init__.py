"""The life of a trial: asked, lent, told, and what people write down about it."""
