import Testing

@testable import HeraldPhone

@Suite struct SoundFileTests {
    private func big(_ value: UInt64, _ size: Int) -> [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (size - 1 - $0))) }
    }

    private func little(_ value: UInt64, _ size: Int) -> [UInt8] { big(value, size).reversed() }

    private func aiff(frames: UInt64, encoding: String?) -> [UInt8] {
        // 44,100 as an extended float of 80 bits.
        let rate: [UInt8] = [0x40, 0x0E, 0xAC, 0x44, 0, 0, 0, 0, 0, 0]
        let common = big(1, 2) + big(frames, 4) + big(16, 2) + rate + Array((encoding ?? "").utf8)
        return Array("FORM".utf8) + big(100, 4) + Array((encoding == nil ? "AIFF" : "AIFC").utf8)
            + Array("COMM".utf8) + big(UInt64(common.count), 4) + common
    }

    private func wave(code: UInt64, seconds: UInt64) -> [UInt8] {
        let format = little(code, 2) + little(1, 2) + little(8000, 4) + little(8000, 4) + little(1, 2) + little(8, 2)
        return Array("RIFF".utf8) + little(0, 4) + Array("WAVEfmt ".utf8) + little(16, 4) + format
            + Array("data".utf8) + little(8000 * seconds, 4)
    }

    private func caf(encoding: String, seconds: UInt64) -> [UInt8] {
        let description =
            big(Double(8000).bitPattern, 8) + Array(encoding.utf8) + big(0, 4) + big(2, 4) + big(1, 4)
            + big(1, 4) + big(16, 4)
        return Array("caff".utf8) + big(1 << 16, 4) + Array("desc".utf8) + big(32, 8) + description
            + Array("data".utf8) + big(16000 * seconds, 8)
    }

    @Test func `the three formats in the four encodings are played`() {
        let files = [
            aiff(frames: 44_100, encoding: nil), aiff(frames: 44_100, encoding: "ulaw"),
            aiff(frames: 20_000, encoding: "ima4"), wave(code: 1, seconds: 30), wave(code: 7, seconds: 1),
            caf(encoding: "lpcm", seconds: 30), caf(encoding: "alaw", seconds: 1), [],
        ]
        for file in files { #expect(SoundFile(prefix: file).fault == nil) }
    }

    @Test func `faults of unplayable sounds`() {
        #expect(SoundFile(prefix: aiff(frames: 44_100 * 31, encoding: nil)).fault == .tooLong(31))
        #expect(SoundFile(prefix: aiff(frames: 22_000, encoding: "ima4")).fault != nil)
        #expect(SoundFile(prefix: aiff(frames: 1, encoding: "QDM2")).fault == .encoding("QDM2"))
        #expect(SoundFile(prefix: wave(code: 1, seconds: 31)).fault == .tooLong(31))
        #expect(SoundFile(prefix: wave(code: 85, seconds: 1)).fault == .encoding("WAV format 85"))
        #expect(SoundFile(prefix: caf(encoding: "lpcm", seconds: 31)).fault == .tooLong(31))
        #expect(SoundFile(prefix: caf(encoding: "aac ", seconds: 1)).fault == .encoding("aac "))
        #expect(SoundFile(prefix: Array("ID3".utf8)).fault == .container)
    }

    @Test func `no damage traps`() {
        let files = [aiff(frames: 1, encoding: "ulaw"), wave(code: 1, seconds: 1), caf(encoding: "lpcm", seconds: 1)]
        for good in files {
            for index in good.indices {
                for byte in [0, 1, 0x7F, 0xFF] as [UInt8] {
                    var bad = good
                    bad[index] = byte
                    _ = SoundFile(prefix: bad)
                    _ = SoundFile(prefix: Array(bad[..<index]))
                }
            }
        }
    }
}
