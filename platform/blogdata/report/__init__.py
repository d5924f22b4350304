"""The report: figures of the data from recorded metadata, and one HTML page that needs no network and no server."""
