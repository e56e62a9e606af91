"""What results say: models of them, recommendations, predictions, and every sentence."""
