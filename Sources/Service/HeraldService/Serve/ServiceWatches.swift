import HeraldActivation
import HeraldCourier
import HeraldMailbox

/// The watches of the trust folder and the clock of a service, and the activation listener, which the trust reaches too.
struct ServiceWatches: Sendable {
    let activation: Activation
    let trust: TrustWatch
    let clock: ClockWatch

    init(_ assembly: ServiceAssembly, devicePort: Int) {
        activation = assembly.activation(devicePort: devicePort)
        trust = TrustWatch(
            trust: assembly.trust,
            gateway: assembly.listeners.gateway,
            binaryGateway: assembly.listeners.binaryGateway,
            courier: assembly.listeners.courier,
            activation: activation,
            console: assembly.listeners.consoleTLS,
            alarm: RevocationAlarm(trust: assembly.trust, clock: assembly.clock, logger: assembly.logger),
            clock: assembly.clock,
            logger: assembly.logger
        )
        clock = ClockWatch(
            clock: assembly.clock,
            store: assembly.storage.store,
            logger: assembly.logger
        ) { [postOffice = assembly.delivery.postOffice, courier = assembly.listeners.courier] in
            postOffice.releaseWithheld()
            courier.releaseWithheld()
        }
    }
}
