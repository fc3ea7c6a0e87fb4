"""The zoo: small operators, each with one real bug pattern, and their repaired twins.

- `python -m tests.zoo.run` explores all of them: every bug has to be found, every twin has to survive 2,000 worlds.
- Each animal names the source of its pattern: an issue of another project, a published list, or our own history.
"""
