"""What people look at: detectors, findings, metrics, alerts, the report, profiles, the doctor."""
