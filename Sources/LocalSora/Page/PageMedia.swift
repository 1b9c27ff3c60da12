extension Page {
    /// The page's cameras and microphones: an ES module.
    // swift-format-ignore
    static let media = ##"""
import { clock, element } from "/elements.js";

// Cameras, microphones, screens, and what stands in for them.

/// A moving picture and a quiet tone, for machines without camera.
function pattern(withSound) {
  const canvas = element("canvas", { width: 640, height: 360 });
  const context = canvas.getContext("2d");
  const hue = Math.random() * 360;
  const stream = canvas.captureStream(30);
  const draw = (time) => {
    if (!stream.active) return;
    context.fillStyle = `hsl(${hue} 60% 22%)`;
    context.fillRect(0, 0, 640, 360);
    for (let index = 0; index < 8; index++) {
      context.fillStyle = `hsl(${hue + index * 30} 75% 60%)`;
      const angle = time / 900 + index * Math.PI / 4;
      context.beginPath();
      context.arc(320 + Math.cos(angle) * 190, 180 + Math.sin(angle) * 100, 26, 0, Math.PI * 2);
      context.fill();
    }
    context.fillStyle = "#fff";
    context.font = "600 44px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillText(clock(), 320, 196);
    requestAnimationFrame(draw);
  };
  requestAnimationFrame(draw);
  if (withSound) {
    const audio = new AudioContext();
    const oscillator = new OscillatorNode(audio, { frequency: 220 + hue });
    const gain = new GainNode(audio, { gain: 0.05 });
    const target = new MediaStreamAudioDestinationNode(audio);
    oscillator.connect(gain).connect(target);
    oscillator.start();
    stream.addTrack(target.stream.getAudioTracks()[0]);
    stream.stopAll = () => audio.close();
  }
  return stream;
}

/// Local media, or null.
export async function openMedia(source, microphone) {
  if (source === "pattern") return pattern(microphone);
  if (source === "none" && !microphone) return null;
  if (!navigator.mediaDevices) throw new Error("Browsers give camera and microphone to https pages and localhost only");
  if (source === "screen") {
    if (!navigator.mediaDevices.getDisplayMedia) throw new Error("This browser cannot share its screen");
    const stream = await navigator.mediaDevices.getDisplayMedia({ video: true });
    if (microphone) {
      try {
        const sound = await navigator.mediaDevices.getUserMedia({ audio: true });
        stream.addTrack(sound.getAudioTracks()[0]);
      } catch (error) {
        for (const track of stream.getTracks()) track.stop();
        throw error;
      }
    }
    return stream;
  }
  return navigator.mediaDevices.getUserMedia({
    audio: microphone, video: source === "camera" ? { width: { ideal: 1280 }, height: { ideal: 720 } } : false,
  });
}

/// Whether this browser has an encoder for a codec as Sora names it.
export function canSend(codec) {
  const codecs = RTCRtpSender.getCapabilities("video")?.codecs ?? [];
  return codecs.some(({ mimeType }) => mimeType.toUpperCase() === `VIDEO/${codec}`);
}

/// What to do about an error of getUserMedia or getDisplayMedia.
export function mediaProblem(error) {
  switch (error.name) {
    case "NotAllowedError":
      return "The browser does not allow camera, microphone or screen. Allow them beside its address, or choose another picture.";
    case "NotFoundError": return "There is no camera or microphone here. Choose Screen, Pattern or None, or switch the microphone off.";
    case "NotReadableError": return "Another program uses the camera or microphone.";
    default: return error.message;
  }
}
"""##
}
