import HeraldGateway
import HeraldListener
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct DescriptorSharesTests {
    /// Descriptors that a machine of so many cores needs at least: the reserve, the console and its socket, and 16
    /// connections of each listener with 16 that make way.
    private static func least(cores: Int) -> Int { 128 + 3 * cores + 2 * 16 + 5 * (16 + 16) }

    private func shares(of limit: Int, cores: Int = 2) throws -> DescriptorShares {
        try DescriptorShares(among: ServerConfiguration(), of: limit, eventLoops: cores)
    }

    @Test(arguments: [1, 60]) func `with enough descriptors nothing is limited`(cores: Int) throws {
        var configuration = ServerConfiguration()
        #expect(try shares(of: 200_000, cores: cores).apply(to: &configuration) == nil)
        #expect(configuration.gateway.listener.maximumConnections == 10_000)
        #expect(configuration.consoleConnections == 128)
    }

    @Test(arguments: 1...60, [0, 1, 192, 704, 3776, 19_680, 99_680])
    func `all listeners together leave the reserve, whatever the cores`(cores: Int, more: Int) throws {
        let limit = Self.least(cores: cores) + more
        var configuration = ServerConfiguration()
        let words = try #require(try shares(of: limit, cores: cores).apply(to: &configuration))
        #expect(words.contains("devices \(configuration.deviceListener.maximumConnections)"))
        let all = configuration.listeners.map { configuration[keyPath: $0] }
        let used = all.reduce(2 * configuration.consoleConnections) { $0 + $1.maximumDescriptors }
        #expect(used <= limit - 128 - 3 * cores)
        #expect(used > limit - 128 - 3 * cores - all.count, "nothing is wasted")
        #expect(all.allSatisfy { $0.maximumConnections >= DescriptorShares.minimum })
    }

    @Test(arguments: 1...60) func `with too few the start is refused in words that say what to do`(cores: Int) throws {
        let needed = Self.least(cores: cores)
        #expect(throws: Never.self) { try shares(of: needed, cores: cores) }
        for limit in [0, 1, 64, 128, needed - 1] {
            let error = try #require(throws: CommandError.self) { try shares(of: limit, cores: cores) }
            #expect(
                error.message.contains("needs \(needed) at least") && error.message.contains("ulimit -n \(needed)")
            )
        }
    }
}
