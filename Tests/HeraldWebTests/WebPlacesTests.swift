import NIOCore
import Testing

@testable import HeraldWeb

struct WebPlacesTests {
    private static let one: [UInt8] = [192, 0, 2, 1]
    private static let other: [UInt8] = [192, 0, 2, 2]
    /// 13 places, 2 kept ones, and one for a connection that makes way.
    private var places = WebPlaces<String>(descriptors: 16)

    private mutating func accept(
        _ name: String,
        _ network: [UInt8] = one,
        _ seconds: Int64 = 0
    ) throws -> WebPlaces<String>.Accepted {
        let accepted = places.accept(name, from: network, at: at(seconds))
        return try #require(accepted)
    }

    private func at(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .seconds(seconds) }

    /// Takes `count` places, a second after another, and returns their numbers.
    private mutating func fill(
        _ count: Int,
        _ network: [UInt8] = one,
        _ phase: WebPlaces<String>.Phase? = nil
    ) throws -> [UInt64] {
        try (0..<count).map { index in
            let number = try accept("\(network[3]).\(index)", network, Int64(index)).number
            if let phase { places.enter(phase, number) }
            return number
        }
    }

    @Test func `a client that sent no request for the longest makes way`() throws {
        var test = self
        let numbers = try test.fill(13)
        test.places.enter(.answering, numbers[0])
        test.places.enter(.asking(at(100)), numbers[1])
        let new = try test.accept("new", Self.one, 101)
        #expect(new.evicted == "1.2")
    }

    @Test func `a client that leaves its answer unread makes way before all others`() throws {
        var test = self
        let numbers = try test.fill(13)
        test.places.enter(.unread(at(60)), numbers[7])
        test.places.enter(.unread(at(50)), numbers[9])
        for (name, evicted) in [("a", "1.9"), ("b", "1.7"), ("c", "1.0")] {
            let new = try test.accept(name, Self.one, 101)
            #expect(new.evicted == evicted)
        }
    }

    @Test func `the network with the most connections makes room`() throws {
        var test = self
        _ = try test.fill(1)
        _ = try test.fill(12, Self.other)
        for index in 0..<5 {
            let accepted = try test.accept("new", Self.one, 200)
            #expect(accepted.evicted == "2.\(index)")
        }
    }

    @Test func `of networks with equally many connections the one that waits for the longest makes room`() throws {
        var test = self
        for index in 0..<13 {
            _ = try test.accept("\(index)", [192, 0, 2, UInt8(100 - index)], Int64((index + 5) % 13))
        }
        let new = try test.accept("new", Self.one, 200)
        #expect(new.evicted == "8")
    }

    @Test func `while all places have an answer to get, new ones get health and metrics`() throws {
        var test = self
        let numbers = try test.fill(13, Self.one, .answering)
        #expect(test.places.isFull)
        let kept = try (0..<2).map { _ in
            let new = try test.accept("kept", Self.other)
            #expect(new.evicted == nil)
            test.places.enter(.answering, new.number)
            return new.number
        }
        let beyond = test.places.accept("beyond", from: Self.other, at: at(0))
        #expect(beyond == nil)
        func maySend() -> [Bool] { ([numbers[0]] + kept).map { test.places.mayServe($0) } }
        #expect(maySend() == [true, false, false])
        test.places.closed(numbers[1])
        #expect(maySend() == [true, true, false], "there is room for one")
    }

    @Test(arguments: 4...1024) func `descriptors are divided without rest`(descriptors: Int) {
        let places = WebPlaces<String>(descriptors: descriptors)
        #expect(places.limit >= 1 && places.kept >= 1 && places.limit + places.kept < descriptors)
    }
}
