"""The study file: its schema, its transactions, its rows with names, its errors in words, salvage.

Nothing outside this folder knows SQL, and nothing in it knows JAX or what a study is for. May
import `recoup.checks` and `recoup.outputs`, and nothing else of ours.
"""
