import ArgumentParser
import HeraldCluster
import HeraldNATS
import HeraldService

/// `herald cluster balance`: spreads the leaders of streams over the servers.
struct ClusterBalance: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "balance",
        abstract: "Spread the leaders of the streams over the NATS servers.",
        discussion: """
            The leader of a stream does most of its work. After an upgrade or a failure, one server may lead all streams, \
            since NATS moves no leader by itself. Each move takes a moment, in which writes wait.

            Example:
              herald cluster balance --config /etc/herald/herald.yaml
            """
    )

    @OptionGroup var access: ClusterAccess

    func run() async throws {
        let moves = try await access.visit { session in
            let moves = LeaderBalance(try await session.streams()).moves
            for move in moves {
                do {
                    try await session.link.jetStream.moveLeader(of: move.stream, to: move.to)
                } catch {
                    throw CommandError(.unreachable, "\(move.stream) stays at \(move.from): \(error)")
                }
                Terminal.say("\(move.stream): from \(move.from) to \(move.to)")
            }
            return moves
        }
        if moves.isEmpty { Terminal.say("the leaders are spread over the servers") }
    }
}

extension ClusterSession {
    /// The states of all streams of Herald's.
    /// - Throws: ``CommandError`` if one cannot be read.
    fileprivate func streams() async throws -> [StreamInfo] {
        guard let partitions = try await records().partitions else {
            throw CommandError(.refused, "the NATS servers have no cluster of Herald's: start a node, which makes it")
        }
        var states: [StreamInfo] = []
        for stream in LogStream.all(of: partitions) {
            do {
                states.append(try await link.jetStream.streamInfo(stream.name))
            } catch {
                throw CommandError(.unreachable, "\(stream.name) does not answer (\(error)): see herald cluster status")
            }
        }
        return states
    }
}
