// Plays the device's sounds. Browsers allow sound only after the user has pressed a button.

import { decode } from "./pcm.js";

const ORDINARY_VOLUME = 0.7;

export class Player {
  /** `rings` gets each sound; `changes` is called when sound is turned on or off. */
  constructor(rings, changes) {
    this.rings = rings;
    this.changes = changes;
    this.context = null;
    this.known = null;
  }

  get isOn() {
    return this.context?.state === "running";
  }

  async turnOn() {
    this.context ??= new AudioContext();
    await this.context.resume();
    this.changes();
  }

  async turnOff() {
    await this.context?.suspend();
    this.changes();
  }

  /** Plays new sounds, but not those of the first snapshot. */
  hear(sounds) {
    const news = this.known ? sounds.filter(({ id }) => !this.known.has(id)) : [];
    this.known = new Set(sounds.map(({ id }) => id));
    for (const sound of news) {
      this.rings(sound);
      if (this.isOn) this.play(sound);
    }
  }

  async play(sound) {
    const volume = sound.volume ?? ORDINARY_VOLUME;
    if (sound.name === "default") return this.chime(volume);
    const address = `/api/apps/${encodeURIComponent(sound.topic)}/sounds/${encodeURIComponent(sound.name)}`;
    try {
      const answer = await fetch(address);
      if (!answer.ok) throw new Error(`no sound: ${answer.status}`);
      const bytes = await answer.arrayBuffer();
      // Browsers do not play most of Core Audio's formats: they are decoded here.
      const pcm = decode(new DataView(bytes));
      if (pcm) this.samples(pcm, volume);
      else await this.file(new Blob([bytes], { type: answer.headers.get("content-type") }), volume);
    } catch {
      this.chime(volume);
    }
  }

  samples({ rate, channels }, volume) {
    const buffer = this.context.createBuffer(channels.length, channels[0].length, rate);
    channels.forEach((samples, index) => buffer.copyToChannel(samples, index));
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.gain(volume));
    source.start();
  }

  async file(blob, volume) {
    const audio = new Audio(URL.createObjectURL(blob));
    audio.volume = volume;
    audio.addEventListener("ended", () => URL.revokeObjectURL(audio.src));
    await audio.play();
  }

  /** The default sound: two notes, the second a fifth above the first. */
  chime(volume) {
    [[660, 0], [990, 0.14]].forEach(([frequency, delay]) => {
      const begin = this.context.currentTime + delay;
      const tone = this.context.createOscillator();
      const gain = this.gain(0);
      tone.frequency.value = frequency;
      gain.gain.setValueAtTime(0, begin);
      gain.gain.linearRampToValueAtTime(volume * 0.5, begin + 0.015);
      gain.gain.exponentialRampToValueAtTime(0.0005, begin + 0.7);
      tone.connect(gain);
      tone.start(begin);
      tone.stop(begin + 0.75);
    });
  }

  gain(volume) {
    const gain = this.context.createGain();
    gain.gain.value = volume;
    gain.connect(this.context.destination);
    return gain;
  }
}
