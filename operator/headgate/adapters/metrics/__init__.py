"""The port `Metrics`: from a Prometheus for all applications, or straight from a driver.

`prometheus` reads one server for everybody, `driver_poller` each driver, `scrape` one page. `poller` chooses between
the first two by what an application says, and stands in where there is no server to ask.
"""
