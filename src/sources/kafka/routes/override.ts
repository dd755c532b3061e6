/**
 * The body of a call that processes one event: `{"dlq_id": …, "override": …}`. The payload of an override is cut out of it as it was
 * written, so that every digit reaches Kafka.
 */
import { JsonText } from '../../../core/json/text.ts'
import { isUuid, isUuidV4 } from '../names.ts'
import type { Override } from '../ports.ts'
import { type FaultKind, type ShapeFault, ShapeRefused } from './request.ts'

export interface ProcessBody {
  readonly dlqId: string
  readonly override: Override | null
  /** The override as it was given, with its four members alone; JSON. */
  readonly overrideText: string | null
}

const EVENT_CORE = ['topic', 'type_', 'payload', 'key'] as const

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Reads the body, or refuses it with all that is wrong with it. */
export function readProcessBody(bytes: Uint8Array): ProcessBody {
  if (bytes.length === 0) throw new ShapeRefused([missing(['body'], 'null')])
  const text = jsonTextOf(bytes)
  if (!isObject(text)) throw new ShapeRefused([wrong(['body'], 'model_attributes_type', text)])
  const members = JsonText.of(text)
  const faults: ShapeFault[] = []
  for (const name of EVENT_CORE) {
    const given = members.at(name)?.written
    // Who writes these here means an override; left aside, another event than that would be published.
    if (given !== undefined) faults.push(wrong(['body', name], 'extra_forbidden', given))
  }
  const dlqId = readDlqId(members.at('dlq_id')?.written, text, faults)
  const given = members.at('override')?.written ?? 'null'
  const override = given === 'null' ? null : readOverride(given, faults)
  if (faults.length > 0) throw new ShapeRefused(faults)
  return { dlqId, override: override?.override ?? null, overrideText: override?.text ?? null }
}

/** Refuses what is no JSON; the position is where reading stopped, if that is known. */
function jsonTextOf(bytes: Uint8Array): string {
  try {
    const text = utf8.decode(bytes)
    JSON.parse(text)
    return text.trim()
  } catch (error) {
    const at = /position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1] ?? '0'
    throw new ShapeRefused([wrong(['body', Number(at)], 'json_invalid', '{}')])
  }
}

function readDlqId(given: string | undefined, body: string, faults: ShapeFault[]): string {
  const loc = ['body', 'dlq_id']
  const id = given === undefined ? null : textOf(given)
  if (given === undefined) faults.push(missing(loc, body))
  else if (id === null) faults.push(wrong(loc, 'uuid_type', given))
  else if (!isUuid(id)) faults.push(wrong(loc, 'uuid_parsing', given))
  else if (!isUuidV4(id)) faults.push(wrong(loc, 'uuid_version', given))
  return id?.toLowerCase() ?? ''
}

function readOverride(
  text: string,
  faults: ShapeFault[],
): { readonly override: Override; readonly text: string } | null {
  const loc = ['body', 'override']
  if (!isObject(text)) {
    faults.push(wrong(loc, 'model_attributes_type', text))
    return null
  }
  const members = JsonText.of(text)
  const before = faults.length
  for (const name of EVENT_CORE) {
    const given = members.at(name)?.written
    if (given === undefined) faults.push(missing([...loc, name], text))
    else if (name === 'payload') {
      if (!isObject(given)) faults.push(wrong([...loc, name], 'dict_type', given))
    } else {
      const kind = stringFault(given)
      if (kind !== null) faults.push(wrong([...loc, name], kind, given))
    }
  }
  if (faults.length > before) return null
  const given = (name: (typeof EVENT_CORE)[number]): string => members.at(name)?.written ?? 'null'
  return {
    override: {
      topic: textOf(given('topic')) ?? '',
      type: textOf(given('type_')) ?? '',
      key: textOf(given('key')) ?? '',
      value: Buffer.from(given('payload')),
    },
    text: `{${EVENT_CORE.map((name) => `"${name}":${given(name)}`).join(',')}}`,
  }
}

const isObject = (text: string): boolean => text.startsWith('{')

/** The string that a JSON text is; null when it is something else. */
function textOf(json: string): string | null {
  return json.startsWith('"') ? String(JSON.parse(json)) : null
}

/** Half a surrogate pair cannot be written in any bytes. */
function stringFault(json: string): FaultKind | null {
  const text = textOf(json)
  if (text === null) return 'string_type'
  return text.isWellFormed() ? null : 'string_unicode'
}

const wrong = (loc: ShapeFault['loc'], kind: FaultKind, input: string): ShapeFault => ({ loc, kind, input })
const missing = (loc: ShapeFault['loc'], input: string): ShapeFault => wrong(loc, 'missing', input)
