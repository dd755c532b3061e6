import { describe, expect, it } from 'vitest'
import { readProcessBody } from './by-topic.ts'
import { ShapeRefused } from './call.ts'

const ID = '4706cc1b-4c32-46d9-91b9-57b2de45dfe0'

const read = (text: string) => readProcessBody(Buffer.from(text))

/** What is wrong with a body: where, and of which kind. */
function faultsOf(text: string | Uint8Array): (readonly [where: string, type: string, input: unknown])[] {
  try {
    readProcessBody(Buffer.from(text))
  } catch (error) {
    if (!(error instanceof ShapeRefused)) throw error
    return JSON.parse(error.body).detail.map(
      ({ loc, type, input, msg }: { loc: string[]; type: string; input: unknown; msg: string }) => {
        expect(msg).toEqual(expect.any(String))
        return [loc.join('.'), type, input]
      },
    )
  }
  return []
}

describe('the body of a call that processes an event', () => {
  it('names the event, and need not say more', () => {
    const plain = { dlqId: ID, override: null, overrideText: null }
    expect(read(`{"dlq_id":"${ID}"}`)).toEqual(plain)
    expect(read(` {"override" : null , "dlq_id":"${ID.toUpperCase()}", "more": {"topic": 1}}\n`)).toEqual(
      plain,
    )
    expect(read(`{"dlq_id":"x","dlq_id":"${ID}"}`)).toEqual(plain)
  })

  it('gives the payload of an override as it was written', () => {
    const payload =
      '{ "n":12345678901234567890, "f": 1.0, "e":1e400,"d":1, "d":2, "s":"\\u00fc ü }" , "x": [{}] }'
    const override = `{"key":"k","more":1, "payload" : {}, "payload" : ${payload} ,"topic":"orders","type_":"created"}`
    const body = read(`{"dlq_id":"${ID}","override": ${override} }`)
    expect(body.override).toEqual({
      topic: 'orders',
      type: 'created',
      key: 'k',
      value: Buffer.from(payload),
    })
    expect(body.overrideText).toBe(`{"topic":"orders","type_":"created","payload":${payload},"key":"k"}`)
  })

  it('may be as deep and as long as it likes', () => {
    const payload = `{"deep":${'['.repeat(100_000)}${']'.repeat(100_000)},"digits":${'9'.repeat(100_000)}}`
    const override = `{"topic":"t","type_":"y","payload":${payload},"key":""}`
    const body = read(`{"dlq_id":"${ID}","override":${override}}`)
    expect(Buffer.from(body.override?.value ?? []).toString()).toBe(payload)
    expect(faultsOf(`{"dlq_id":"${ID}","override":{"payload":${payload}}}`)).toHaveLength(3)
  })

  it('is refused with everything that is wrong about it', () => {
    expect(faultsOf('')).toEqual([['body', 'missing', null]])
    expect(faultsOf('[1]')).toEqual([['body', 'model_attributes_type', [1]]])
    expect(faultsOf('null')).toEqual([['body', 'model_attributes_type', null]])
    expect(faultsOf('{"a": 1}')).toEqual([['body.dlq_id', 'missing', { a: 1 }]])
    expect(faultsOf('{"dlq_id": 1}')).toEqual([['body.dlq_id', 'uuid_type', 1]])
    expect(faultsOf('{"dlq_id": null}')).toEqual([['body.dlq_id', 'uuid_type', null]])
    expect(faultsOf('{"dlq_id": "x"}')).toEqual([['body.dlq_id', 'uuid_parsing', 'x']])
    const v1 = '4706cc1b-4c32-16d9-91b9-57b2de45dfe0'
    expect(faultsOf(`{"dlq_id": "${v1}"}`)).toEqual([['body.dlq_id', 'uuid_version', v1]])
    expect(faultsOf(`{"dlq_id": "${ID}", "override": "x"}`)).toEqual([
      ['body.override', 'model_attributes_type', 'x'],
    ])
    expect(faultsOf(`{"dlq_id": "${ID}", "override": {"topic": 1, "payload": [], "key": null}}`)).toEqual([
      ['body.override.topic', 'string_type', 1],
      ['body.override.type_', 'missing', { topic: 1, payload: [], key: null }],
      ['body.override.payload', 'dict_type', []],
      ['body.override.key', 'string_type', null],
    ])
    const half = `{"topic":"t","type_":"y","payload":{},"key":"\\ud800"}`
    expect(faultsOf(`{"dlq_id": "${ID}", "override": ${half}}`)).toMatchObject([
      ['body.override.key', 'string_unicode', '\ud800'],
    ])
  })

  it('is refused when it has at its top what belongs into an override', () => {
    expect(faultsOf(`{"dlq_id":"${ID}","payload":{"a":1},"topic":"orders"}`)).toEqual([
      ['body.topic', 'extra_forbidden', 'orders'],
      ['body.payload', 'extra_forbidden', { a: 1 }],
    ])
  })

  it('is refused when it is no JSON', () => {
    expect(faultsOf('{"dlq_id":')).toEqual([[expect.stringMatching(/^body\.\d+$/), 'json_invalid', {}]])
    expect(faultsOf('{"a":NaN}')).toMatchObject([[expect.any(String), 'json_invalid', {}]])
    expect(faultsOf(Buffer.from([0x22, 0xff, 0x22]))).toMatchObject([['body.0', 'json_invalid', {}]])
  })

  it('is repeated as it was written', () => {
    expect(() => read('{"n":12345678901234567890,"f":1.0}')).toThrow(
      expect.objectContaining({
        body: expect.stringContaining('"input":{"n":12345678901234567890,"f":1.0}}'),
      }),
    )
  })

  it('is not repeated when it is long', () => {
    expect(faultsOf(`{"dlq_id": "${'x'.repeat(5_000)}"}`)).toEqual([['body.dlq_id', 'uuid_parsing', null]])
  })
})
