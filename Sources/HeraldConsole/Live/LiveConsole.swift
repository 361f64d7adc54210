import Hummingbird

/// The console's memory of the service's present and recent past.
package struct LiveConsole: Sendable {
    package let series: SeriesRecorder

    package init(series: SeriesRecorder) {
        self.series = series
    }

    func addRoutes(to group: RouterGroup<ConsoleContext>) {
        SeriesRoutes(recorder: series).add(to: group)
    }
}
