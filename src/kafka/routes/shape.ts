/**
 * Requests of another shape than a call takes: 422 with a list of what is wrong, in the words that clients of FastAPI know. What was
 * given is shown as it was written, because to write it anew could change it, or fail.
 */

/** One thing that is wrong. */
export interface ShapeFault {
  /** Where: `query`, `path` or `body`, then the names on the way. */
  readonly loc: readonly (string | number)[]
  readonly kind: FaultKind
  /** What was given, as JSON. */
  readonly input: string
}

const MESSAGES = {
  missing: 'Field required',
  int_parsing: 'Input should be a valid integer, unable to parse string as an integer',
  bool_parsing: 'Input should be a valid boolean, unable to interpret input',
  uuid_type: 'UUID input should be a string, bytes or UUID object',
  uuid_parsing: 'Input should be a valid UUID',
  uuid_version: 'UUID version 4 expected',
  string_type: 'Input should be a valid string',
  string_unicode: 'Input should be a valid string, unable to parse raw data as a unicode string',
  dict_type: 'Input should be a valid dictionary',
  model_attributes_type: 'Input should be a valid dictionary or object to extract fields from',
  extra_forbidden: 'Extra inputs are not permitted',
  json_invalid: 'JSON decode error',
} as const
export type FaultKind = keyof typeof MESSAGES

/** What is longer than this is not repeated. */
const SHOWN_CHARACTERS = 4_096

/** A request that no call takes in this shape. */
export class ShapeRefused extends Error {
  override readonly name = 'ShapeRefused'
  /** The answer's. */
  readonly body: string

  constructor(faults: readonly ShapeFault[]) {
    super('the request has another shape')
    this.body = `{"detail":[${faults.map(faultText).join(',')}]}`
  }
}

function faultText({ loc, kind, input }: ShapeFault): string {
  const shown = input.length > SHOWN_CHARACTERS ? 'null' : input
  return `{"loc":${JSON.stringify(loc)},"msg":${JSON.stringify(MESSAGES[kind])},"type":"${kind}","input":${shown}}`
}
