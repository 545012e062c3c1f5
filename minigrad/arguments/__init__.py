"""Checks the arguments of public functions: the error of a failed call names the wrong argument."""
