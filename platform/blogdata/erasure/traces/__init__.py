"""What remembers persons after their landed lines and rows are gone: a module for each kind of place.

Every function here may run again after it was cut off anywhere, and has the same result then.
"""
