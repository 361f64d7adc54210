import HeraldGateway
import HeraldListener
import Testing

@testable import HeraldCommand

@Suite struct DescriptorSharesTests {
    @Test func `with enough descriptors nothing is limited`() throws {
        var configuration = ServerConfiguration()
        #expect(try DescriptorShares(among: configuration, of: 200_000).apply(to: &configuration) == nil)
        #expect(configuration.gateway.listener.maximumConnections == 10_000)
        #expect(configuration.consoleConnections == 128)
    }

    @Test(arguments: [512, 1024, 4096, 20_000, 100_000])
    func `all listeners together stay below the limit, with a reserve`(limit: Int) throws {
        var configuration = ServerConfiguration()
        let words = try #require(try DescriptorShares(among: configuration, of: limit).apply(to: &configuration))
        #expect(words.contains("devices \(configuration.deviceListener.maximumConnections)"))
        let all = configuration.listeners.map { configuration[keyPath: $0] }
        let used = all.reduce(2 * configuration.consoleConnections) { $0 + $1.maximumDescriptors }
        #expect(used <= limit - DescriptorShares.reserve)
        #expect(used > limit - DescriptorShares.reserve - all.count, "nothing is wasted")
        #expect(all.allSatisfy { $0.maximumConnections >= DescriptorShares.minimum })
    }

    @Test func `with too few the start is refused in words that say what to do`() throws {
        let needed = 128 + 32 + 5 * 32
        #expect(throws: Never.self) { try DescriptorShares(among: ServerConfiguration(), of: needed) }
        let error = try #require(throws: CommandError.self) {
            try DescriptorShares(among: ServerConfiguration(), of: needed - 1)
        }
        #expect(error.message.contains("needs \(needed) at least") && error.message.contains("ulimit -n \(needed)"))
    }
}
