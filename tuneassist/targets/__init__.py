"""What it is tuned for: native detection, target specs, and the doctor's checks."""
