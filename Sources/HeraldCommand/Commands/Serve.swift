import ArgumentParser
import Foundation

/// `herald serve`: the service itself.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the service.",
        discussion: """
            An empty data folder is a working service: the first start makes authorities, certificates and keys in it.
            Every option is also a key of the configuration file (api-port: 2197) and an environment variable
            (HERALD_API_PORT=2197); the command line wins over the environment, and that over the file.

            Example:
              herald serve --hostname push.example.com --host 0.0.0.0 --data /var/lib/herald
            """
    )

    @OptionGroup var options: ServeOptions

    func run() async throws {
        _ = try options.configuration(environment: ProcessInfo.processInfo.environment)
    }
}
