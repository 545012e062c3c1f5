// What most views have around their picture, and how a page holds their data.

// The data that Python packed: large ones are compressed.
const unpacked = async (data) => {
  if (!data.deflated) return data;
  const bytes = Uint8Array.from(atob(data.deflated), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
};
