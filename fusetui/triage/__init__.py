"""Measures to findings: what is wrong, how sure, what the evidence does not prove, who owns it, what to do and undo.

`judge.triage(snapshot)` is the way in; `finding` is what comes out; a rule is one entry of a file under `rules`.
"""
