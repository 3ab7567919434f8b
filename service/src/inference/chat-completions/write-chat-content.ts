import type { Json } from '#inference/answer.ts'
import type { DocumentPart, ImagePart, TextPart } from '#inference/turn.ts'

type UserPart = TextPart | ImagePart | DocumentPart

/** A single text is written plainly, because not every upstream takes parts. */
export function writeContent(parts: readonly UserPart[]): string | Json[] {
  const written = parts.flatMap(writePart)
  const [only] = written
  return written.length === 1 && typeof only?.['text'] === 'string' ? only['text'] : written
}

function writePart(part: UserPart): Json[] {
  switch (part.type) {
    case 'text':
      return [{ type: 'text', text: part.text }]
    case 'image':
      return writeImage(part)
    case 'document':
      return [writeDocument(part)]
  }
}

const dataUrl = ({ mediaType, data }: { mediaType: string; data: string }) =>
  `data:${mediaType};base64,${data}`

function writeImage({ source, detail }: ImagePart): Json[] {
  // This format has no place for an image that is stored elsewhere.
  if (source.type === 'file') return []
  const url = source.type === 'url' ? source.url : dataUrl(source)
  return [{ type: 'image_url', image_url: { url, ...(detail && { detail }) } }]
}

function writeDocument({ source, title }: DocumentPart): Json {
  switch (source.type) {
    case 'text':
      return { type: 'text', text: titled(title, source.text) }
    case 'url':
      return { type: 'text', text: titled(title, source.url) }
    case 'file':
      return { type: 'file', file: { file_id: source.id } }
    case 'base64':
      if (source.mediaType.startsWith('audio/')) {
        const format = source.mediaType.slice('audio/'.length)
        return { type: 'input_audio', input_audio: { data: source.data, format } }
      }
      return {
        type: 'file',
        file: { filename: title ?? 'document.pdf', file_data: dataUrl(source) },
      }
  }
}

const titled = (title: string | null, text: string) =>
  title === null ? text : `${title}\n\n${text}`
