"""Mutation tests: plant bugs in tinynode, one at a time, and count the bugs that tests catch.

Requirement: the tests are the net under every gradient, so the holes in the net must be known.
The library cosmic-ray gives the mutants, the session database and reports. This package adds
operators for autodiff code, the choice of tests for each mutant, and a quick runner.

    python -m tools.mutation --help
"""
