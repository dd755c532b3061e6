/**
 * A raw client of the queue API. Requests and replies are written in the JSON names of the contract; a codec
 * puts them on the wire as JSON or as binary protobuf, so that every test body is written once.
 * Every reply is checked against the contract's messages: no unknown field, defaults left out, canonical
 * timestamps and base64, HTTP status equal to the code in the body, the two reply headers.
 */
import type { Readable } from 'node:stream'
import { isDeepStrictEqual } from 'node:util'
import { type DescMessage, fromBinary, fromJson, type JsonValue, toBinary, toJson } from '@bufbuild/protobuf'
import { Agent, type Dispatcher, request } from 'undici'
import { expect } from 'vitest'
import { CALLS, message, type Path } from './messages.ts'

export type Json = { [name: string]: JsonValue }

export interface Codec {
  readonly name: string
  readonly send: 'json' | 'protobuf'
  readonly receive: 'json' | 'protobuf'
  /** Sent as `Accept`; left out when absent. */
  readonly accept?: string
}

export const jsonCodec: Codec = { name: 'JSON', send: 'json', receive: 'json', accept: 'application/json' }
export const protobufCodec: Codec = {
  name: 'protobuf',
  send: 'protobuf',
  receive: 'protobuf',
  accept: 'application/protobuf',
}
/** What the Go client does: binary requests without an `Accept` header, JSON replies. */
export const goCodec: Codec = { name: 'protobuf, answered in JSON', send: 'protobuf', receive: 'json' }

export const codecs: readonly Codec[] = [jsonCodec, protobufCodec]

export interface Answer {
  readonly status: number
  readonly body: Json
}

const CONTENT_TYPE = { json: 'application/json', protobuf: 'application/protobuf' }

export class Wire {
  readonly url: string
  readonly #agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 30_000 })

  constructor(url: string) {
    this.url = url
  }

  /** One call of the contract. */
  async call(codec: Codec, path: Path, body: Json, signal?: AbortSignal): Promise<Answer> {
    const [requestName, replyName] = CALLS[path]
    const reply = await this.raw(path, {
      headers: {
        'content-type': CONTENT_TYPE[codec.send],
        ...(codec.accept === undefined ? {} : { accept: codec.accept }),
      },
      body: encode(codec.send, message(requestName), body),
      ...(signal === undefined ? {} : { signal }),
    })
    const expected = message(reply.status === 200 ? replyName : 'Reply')
    expect(reply.headers['content-type']).toBe(CONTENT_TYPE[codec.receive])
    expect(reply.headers['x-content-type-options']).toBe('nosniff')
    return { status: reply.status, body: checked(reply.status, decode(codec.receive, expected, reply.bytes)) }
  }

  /** Any request, with headers and body as given. */
  async raw(path: string, options: RawRequest): Promise<RawReply> {
    const reply = await request(new URL(path, this.url), {
      method: options.method ?? 'POST',
      dispatcher: this.#agent,
      headers: options.headers ?? {},
      body: options.body ?? null,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    })
    const bytes = new Uint8Array(await reply.body.arrayBuffer())
    return { status: reply.statusCode, headers: reply.headers, bytes }
  }

  /** A JSON call outside the messages of section 4: the test control surface. */
  async control(path: string, body: Json): Promise<Answer> {
    const headers = { 'content-type': 'application/json' }
    const reply = await this.raw(path, { headers, body: JSON.stringify(body) })
    return {
      status: reply.status,
      body: checked(reply.status, decode('json', message('Reply'), reply.bytes)),
    }
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }
}

export interface RawRequest {
  readonly method?: Dispatcher.HttpMethod
  readonly headers?: Record<string, string>
  readonly body?: string | Uint8Array | Readable
  readonly signal?: AbortSignal
}

export interface RawReply {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly bytes: Uint8Array
}

/** The JSON of a raw reply, decoded strictly as the named message. */
export function replyJson(reply: RawReply, name = 'Reply'): Json {
  return checked(reply.status, decode('json', message(name), reply.bytes))
}

export function encode(form: 'json' | 'protobuf', schema: DescMessage, body: Json): string | Uint8Array {
  return form === 'json' ? JSON.stringify(body) : toBinary(schema, fromJson(schema, body))
}

export function decode(form: 'json' | 'protobuf', schema: DescMessage, bytes: Uint8Array): Json {
  // Messages of the contract are JSON objects, never the special forms of well-known types.
  const asObject = (value: JsonValue) => value as Json
  if (form === 'protobuf') {
    const decoded = fromBinary(schema, bytes)
    expect(decoded.$unknown ?? []).toEqual([])
    return asObject(toJson(schema, decoded))
  }
  const received: JsonValue = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  const canonical = toJson(schema, fromJson(schema, received))
  // The quick comparison first: the other one explains, and takes long over thousands of items.
  if (!isDeepStrictEqual(received, canonical)) expect(received).toEqual(canonical)
  return asObject(received)
}

const CODE_TEXTS: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  453: 'Request Failed',
  454: 'Retry Request',
  455: 'Client Content Error',
  500: 'Internal Service Error',
  501: 'Not Implemented',
}

/** Errors have exactly code, code_text and message, and the status of HTTP is the code of the body. */
function checked(status: number, body: Json): Json {
  if (status === 200) return body
  expect(body).toEqual({ code: status, code_text: CODE_TEXTS[status], message: expect.any(String) })
  return body
}
