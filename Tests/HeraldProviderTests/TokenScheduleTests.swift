import Crypto
import HeraldModel
import NIOCore
import Testing

@testable import HeraldProvider

@Suite struct TokenScheduleTests {
    private let wall = WallTime(seconds: 1_700_000_000)
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

    private func held() -> TokenSchedule {
        var schedule = TokenSchedule()
        schedule.made("A", wall: wall, now: start)
        return schedule
    }

    @Test func `a token is replaced after fifty minutes`() {
        #expect(TokenSchedule().token(wall: wall, now: start) == nil)
        let schedule = held()
        #expect(schedule.token(wall: wall + .seconds(2999), now: start + .seconds(2999)) == "A")
        #expect(schedule.token(wall: wall + .seconds(3000), now: start + .seconds(3000)) == nil)
    }

    @Test func `a small step of the clock changes nothing, in either direction`() {
        let schedule = held()
        #expect(schedule.token(wall: wall - .seconds(60), now: start + .seconds(1)) == "A")
        #expect(schedule.token(wall: wall + .seconds(600), now: start + .seconds(1)) == "A")
    }

    @Test func `a token from the future, or of a clock that was an hour slow, is replaced`() {
        let schedule = held()
        #expect(schedule.token(wall: wall - .seconds(61), now: start + .seconds(1)) == nil)
        #expect(schedule.token(wall: wall + .seconds(3600), now: start + .seconds(1)) == nil)
    }

    @Test func `a clock that was set back does not keep a token for ever`() {
        let schedule = held()
        #expect(schedule.token(wall: wall + .seconds(10), now: start + .seconds(3000)) == nil)
    }

    @Test func `a token that the service calls too old is replaced, but not within twenty minutes`() {
        var schedule = held()
        #expect(schedule.expired("A", wall: wall + .seconds(1199), now: start + .seconds(1199)) == false)
        #expect(schedule.token(wall: wall + .seconds(1199), now: start + .seconds(1199)) == "A")
        #expect(schedule.expired("A", wall: wall + .seconds(1200), now: start + .seconds(1200)) == true)
        #expect(schedule.token(wall: wall + .seconds(1200), now: start + .seconds(1200)) == nil)
    }

    @Test func `many requests that find the same token too old replace it once`() {
        var schedule = held()
        let (wall, now) = (wall + .seconds(2000), start + .seconds(2000))
        #expect(schedule.expired("A", wall: wall, now: now) == true)
        schedule.made("B", wall: wall, now: now)
        #expect(schedule.expired("A", wall: wall, now: now) == true)
        #expect(schedule.token(wall: wall, now: now) == "B")
        #expect(schedule.expired("B", wall: wall, now: now) == false)
    }

    @Test func `all clients of a key share one token`() throws {
        let pem = Array(P256.Signing.PrivateKey().pemRepresentation.utf8)
        let first = try ProviderTokenSource.shared(pem: pem, keyID: "ABCDE12345", team: "TEAM123456")
        let second = try ProviderTokenSource.shared(pem: pem, keyID: "ABCDE12345", team: "TEAM123456")
        let value = try first.authorization(wall: wall, now: start)
        #expect(try second.authorization(wall: wall + .seconds(9), now: start) == value && value.hasPrefix("bearer "))
        let other = try ProviderTokenSource.shared(pem: pem, keyID: "ABCDE12346", team: "TEAM123456")
        #expect(first === second && first !== other)
    }
}
