"""The figures of the paper: what each measures, what it claims, how it is drawn."""
