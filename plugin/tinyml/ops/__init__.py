"""One file per operator (or per family of operators that differ in one expression).

Importing this package imports every file in it, and each registers its readers and kernels: there
is no list to edit. Files that start with an underscore are shared helpers.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
