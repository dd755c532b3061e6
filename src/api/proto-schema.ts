/** JSON Schema of protobuf messages, so that the OpenAPI document and the codecs have one source. */
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import type { TSchema } from 'typebox'

export type JsonSchema = TSchema

const TIMESTAMP = 'google.protobuf.Timestamp'

/** Named after its message, with JSON names; no field is required, as in proto3. */
export function messageSchema(message: DescMessage) {
  return {
    $id: message.name,
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(message.fields.map((field) => [field.jsonName, fieldSchema(field)])),
  }
}

export const messageReference = (message: DescMessage): JsonSchema => ({ $ref: `${message.name}#` })

function fieldSchema(field: DescField): JsonSchema {
  switch (field.fieldKind) {
    case 'scalar':
      return scalarSchema(field.scalar)
    case 'message':
      return valueSchema(field.message)
    case 'list':
      return { type: 'array', items: elementSchema(field) }
    case 'map':
      return { type: 'object', additionalProperties: elementSchema(field) }
    case 'enum':
      return { type: 'string' }
  }
}

function elementSchema(field: {
  readonly scalar?: ScalarType | undefined
  readonly message?: DescMessage | undefined
}) {
  if (field.message !== undefined) return valueSchema(field.message)
  return field.scalar === undefined ? { type: 'string' } : scalarSchema(field.scalar)
}

const valueSchema = (message: DescMessage): JsonSchema =>
  message.typeName === TIMESTAMP ? { type: 'string', format: 'date-time' } : messageReference(message)

function scalarSchema(scalar: ScalarType): JsonSchema {
  switch (scalar) {
    case ScalarType.BOOL:
      return { type: 'boolean' }
    case ScalarType.INT32:
      return { type: 'integer', format: 'int32' }
    case ScalarType.STRING:
      return { type: 'string' }
    case ScalarType.BYTES:
      return { type: 'string', format: 'byte' }
    default:
      throw new Error(`no schema for the scalar type ${ScalarType[scalar]}`)
  }
}
