"""The browser: routes, people, and the state that several of them share; everything else is asked of `app`."""
