// Whether the top of a picture is light or dark, so that the status bar on it can be read.

/** The height of the status bar as a part of the screen. */
const TOP = 0.07;

export function tone(picture) {
  const canvas = document.createElement("canvas");
  canvas.width = 8;
  canvas.height = 1;
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, 8, 1);
  const { naturalWidth, naturalHeight } = picture;
  if (naturalWidth > 0 && naturalHeight > 0) {
    pen.drawImage(picture, 0, 0, naturalWidth, Math.max(1, naturalHeight * TOP), 0, 0, 8, 1);
  }
  const colours = pen.getImageData(0, 0, 8, 1).data;
  let light = 0;
  for (let index = 0; index < colours.length; index += 4) {
    light += 0.3 * colours[index] + 0.59 * colours[index + 1] + 0.11 * colours[index + 2];
  }
  return light / 8 < 140 ? "dark" : "light";
}
