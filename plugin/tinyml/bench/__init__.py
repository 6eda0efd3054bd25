"""What models cost on a core, exactly and repeatably: instructions and bytes, never time."""
