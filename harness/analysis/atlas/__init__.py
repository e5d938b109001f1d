"""What a draft atlas says of schedules, widths and branches, without the model."""
