"""Small stores beside the lake that survive the death of any process that writes them."""
