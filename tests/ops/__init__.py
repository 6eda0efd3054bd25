"""Cases for the operators, as data: one file per file of ``tinyml/ops``, each with a list ``CASES``."""
