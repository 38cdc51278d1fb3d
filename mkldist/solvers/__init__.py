"""The methods: generators that ask a bank and return certified solutions."""
