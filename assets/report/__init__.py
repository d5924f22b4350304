"""The figures of the blog, and the report that shows them beside the state of the data."""

FILE = "report.html"
