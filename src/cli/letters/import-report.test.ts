import { describe, expect, it } from 'vitest'
import type { LetterDetail } from '../../client/letter-types.ts'
import { readLetter, reportOf } from './import-report.ts'

const LETTER: LetterDetail = {
  engine: 'queues',
  rowKey: 'item-20270110T090000000000Z',
  instanceId: 'item',
  originalQueue: 'orders',
  errorMessage: 'it failed',
  dequeueCount: 0,
  status: 'Pending',
  firstFailureAtUtc: '2027-01-10T09:00:00.000000Z',
  lastFailureAtUtc: '2027-01-10T10:00:00.000000Z',
  correlationId: 'c-1',
  resolutionNotes: null,
  resolvedAtUtc: null,
  resolvedBy: null,
  resolution: null,
  confirmedAtUtc: null,
  source: 'queues',
  sourceId: 'item',
  signature: '1-ab',
  reason: 'expired',
  errorClass: '',
  deadQueue: 'orders-dead',
  version: 1,
  originalPartition: 0,
  itemCreatedAtUtc: null,
  expiredAtUtc: null,
  restorableUntilUtc: null,
  originalMessage: '/wA=',
  originalMessageEncoding: 'base64',
  originalMessageSha256: '',
  editedMessage: null,
  editedMessageEncoding: null,
  encoding: '',
  kind: 'order',
  reference: '',
  headers: null,
  headersEncoding: null,
  errorStack: null,
  failedBy: null,
  leased: false,
  leaseDeadlineUtc: null,
  sentAs: null,
  sentTo: null,
  remarks: [],
  attempts: [],
  history: [],
}

describe('a letter to import', () => {
  it('is reported with its bytes, times and where it came from, under http when its engine is the office’s own', () => {
    expect(reportOf(LETTER, undefined)).toEqual({
      engine: 'http',
      sourceId: 'import:queues:item',
      originalMessage: Uint8Array.of(0xff, 0),
      errorMessage: 'it failed',
      instanceId: 'item',
      originalQueue: 'orders',
      correlationId: 'c-1',
      dequeueCount: 1,
      firstFailureAtUtc: '2027-01-10T09:00:00.000000Z',
      lastFailureAtUtc: '2027-01-10T10:00:00.000000Z',
      headers: {
        'bartleby-original-engine': 'queues',
        'bartleby-original-row-key': 'item-20270110T090000000000Z',
        'bartleby-original-source-id': 'item',
        'bartleby-original-kind': 'order',
      },
    })
    expect(reportOf({ ...LETTER, engine: 'hmac' }, undefined).engine).toBe('hmac')
    expect(reportOf(LETTER, 'tls').engine).toBe('tls')
  })

  it('has the same source id however often it goes round, and however long its own is', () => {
    const again = reportOf({ ...LETTER, engine: 'http', sourceId: 'import:queues:item' }, undefined)
    expect(again.sourceId).toBe('import:queues:item')
    const long = reportOf({ ...LETTER, sourceId: 'x'.repeat(512) }, undefined).sourceId
    expect(long).toMatch(/^import:queues:sha256:[0-9a-f]{64}$/)
  })

  it('still says where it came from first when it goes round', () => {
    const { headers = {} } = reportOf(LETTER, undefined)
    const imported = { ...LETTER, engine: 'http', sourceId: 'import:queues:item', rowKey: 'other', headers }
    expect(reportOf({ ...imported, headersEncoding: 'json' }, undefined).headers).toEqual(headers)
  })

  it('keeps its headers as texts, whatever they were', () => {
    const headersOf = (headers: unknown, headersEncoding: LetterDetail['headersEncoding']) =>
      reportOf({ ...LETTER, headers, headersEncoding }, undefined).headers
    expect(headersOf({ trace: 't', n: 1, list: ['a'] }, 'json')).toMatchObject({
      trace: 't',
      n: '1',
      list: '["a"]',
    })
    expect(headersOf('raw', 'utf8')).toMatchObject({ 'bartleby-original-headers': 'raw' })
  })

  it('is read from a line, or it is said why not', () => {
    const read = (text: string) => readLetter(Buffer.from(text))
    expect(read(JSON.stringify(LETTER))).toEqual({ kind: 'letter', letter: LETTER })
    expect(read('{')).toEqual({ kind: 'unreadable', reason: 'it is no JSON' })
    expect(read('7')).toEqual({ kind: 'unreadable', reason: 'it is no object' })
    expect(read('{"engine":"x"}')).toMatchObject({ reason: expect.stringContaining("'rowKey' is missing") })
    expect(readLetter(Uint8Array.of(0xff)).kind).toBe('unreadable')
  })
})
