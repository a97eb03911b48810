"""A report of one trace: plain data first (`content`), then a document of blocks, then Markdown or HTML.

Numbers are worked out once, in `content`; a form only lays them out. A new section is one function in `sections`.
"""
