"""What the independent models share: values, types and three-valued logic, written from the documentation alone.

Nothing here imports the product but its public names, and nothing knows of codes, axes, boxes or indexes.
"""
