"""What makes and checks a release: `make dist` and `make rooms`."""
