"""The site with the course in the reader's browser: ``python -m tools.browser_site``."""
