"""The page of a film: the document, its script and style, and formulas as MathML."""
