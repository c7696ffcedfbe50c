"""REAM# (Gao et al. 2021): how reliable is a set of references for judging the answers to one query?"""
