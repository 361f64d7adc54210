package import HeraldModel
import Synchronization

/// The names of the credentials that sent notifications, each with its number in the journal.
///
/// Numbers count up from 1. The store keeps the names on disk, so that a number means the same after a restart.
package final class SenderNames: Sendable {
    /// The longest name, in bytes; a longer one is cut.
    package static let longestName = 128
    /// The most names; further credentials have no number.
    package static let capacity = Int(UInt16.max)

    private struct State {
        var names: [String] = []
        var numbers: [String: UInt16] = [:]
    }

    private let state = Mutex(State())
    /// The requests of each credential.
    package let use = SenderUse()

    package init() {}

    /// Takes over the names of a journal, the first of which has the number 1.
    package func load(_ names: [String]) {
        state.withLock { state in
            state = State()
            for name in names.prefix(SenderNames.capacity) {
                state.names.append(name)
                state.numbers[name] = UInt16(state.names.count)
            }
        }
    }

    /// The number of a name, which gets one if it has none.
    package func number(of name: String) -> SenderNumber {
        let name = name.cut(toBytes: SenderNames.longestName)
        guard !name.isEmpty else { return .unknown }
        return state.withLock { state in
            if let number = state.numbers[name] { return SenderNumber(number) }
            guard state.names.count < SenderNames.capacity else { return .unknown }
            state.names.append(name)
            let number = UInt16(state.names.count)
            state.numbers[name] = number
            return SenderNumber(number)
        }
    }

    /// The requests of a credential since the start of the service; nil if there was none.
    package func use(of name: String) -> SenderUse.Counts? {
        state.withLock { $0.numbers[name] }.flatMap { use.counts(of: SenderNumber($0)) }
    }

    package func name(of number: SenderNumber) -> String? {
        state.withLock { state in
            guard number != .unknown, Int(number.value) <= state.names.count else { return nil }
            let name = state.names[Int(number.value) - 1]
            return name.isEmpty ? nil : name
        }
    }

    /// The names after the first `count`, up to that of a number.
    package func names(after count: Int, upTo number: SenderNumber) -> [String] {
        state.withLock { state in
            let end = min(Int(number.value), state.names.count)
            return count < end ? Array(state.names[count..<end]) : []
        }
    }
}
