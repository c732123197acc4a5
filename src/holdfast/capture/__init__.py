"""Facts of the world at one moment. Capturing them changes nothing."""
