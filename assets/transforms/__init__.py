"""Column rules of the blog's datasets: frames in, frames out, nothing is read or written."""
