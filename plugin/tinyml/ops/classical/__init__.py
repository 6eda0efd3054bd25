"""Trees, forests, linear models and the class outputs of scikit-learn exports."""
