"""A broker's properties file as typed settings, for guard, gateway and command line. Every key is declared here."""
