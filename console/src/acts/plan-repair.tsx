/** What is changed in every letter on its way: its payload by a JSON Patch or a mapping, and headers of its item. */
import { Code, Group, NativeSelect, SegmentedControl, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'
import { ITEM_HEADERS, type RepairHeader } from '../api/redrive-types.ts'
import type { Draft, DraftField, HeaderDraft, PayloadRepair } from './plan-draft.ts'

export interface PlanRepairProps {
  readonly draft: Draft
  readonly errorAt: (field: DraftField) => string | undefined
  readonly change: (changes: Partial<Draft>) => void
}

const PAYLOADS: readonly { readonly value: PayloadRepair; readonly label: string }[] = [
  { value: 'keep', label: 'As it is' },
  { value: 'patch', label: 'JSON Patch' },
  { value: 'mapping', label: 'Mapping (JSONata)' },
]

export function PlanRepair({ draft, errorAt, change }: PlanRepairProps) {
  const isUsed = draft.payload !== 'keep' || Object.keys(draft.headers).length > 0
  const [isOpen, setOpen] = useState(isUsed)
  return (
    <details className="plan-repair" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {isUsed ? `Repair on the way: ${wordsOf(draft)}` : 'Repair on the way: nothing is changed'}
      </summary>
      {isOpen && (
        <Stack gap="sm" mt="xs">
          <Group gap="sm">
            <Text size="sm" id="plan-payload">
              Payload
            </Text>
            <SegmentedControl
              size="xs"
              aria-labelledby="plan-payload"
              data={[...PAYLOADS]}
              value={draft.payload}
              onChange={(payload) => change({ payload })}
            />
          </Group>
          {draft.payload === 'patch' && (
            <Textarea
              label="JSON Patch"
              description="A list of operations (RFC 6902). What they do not touch stays byte for byte as it is."
              placeholder={'[{ "op": "replace", "path": "/currency", "value": "EUR" }]'}
              classNames={{ input: 'editor' }}
              rows={5}
              spellCheck={false}
              value={draft.patch}
              error={errorAt('patch')}
              onChange={(event) => change({ patch: event.currentTarget.value })}
            />
          )}
          {draft.payload === 'mapping' && (
            <Textarea
              label="Mapping"
              description={
                <>
                  A JSONata expression: the payload is its input, what it gives is sent. For example{' '}
                  <Code>{'$ ~> |$|{"currency": "EUR"}|'}</Code>.
                </>
              }
              classNames={{ input: 'editor' }}
              rows={5}
              spellCheck={false}
              value={draft.mapping}
              error={errorAt('mapping')}
              onChange={(event) => change({ mapping: event.currentTarget.value })}
            />
          )}
          <Headers
            headers={draft.headers}
            error={errorAt('headers')}
            change={(headers) => change({ headers })}
          />
        </Stack>
      )}
    </details>
  )
}

function wordsOf({ payload, headers }: Draft): string {
  const changed = Object.keys(headers)
  return [
    ...(payload === 'keep' ? [] : [payload === 'patch' ? 'a JSON Patch' : 'a mapping']),
    ...(changed.length === 0 ? [] : [changed.join(', ')]),
  ].join(' and ')
}

interface HeadersProps {
  readonly headers: HeaderDraft
  readonly error: string | undefined
  readonly change: (headers: HeaderDraft) => void
}

function Headers({ headers, error, change }: HeadersProps) {
  return (
    <Stack gap={6} role="group" aria-label="Headers of the item">
      <Text size="sm">Headers, of letters that go to queues</Text>
      <div className="plan-headers">
        {ITEM_HEADERS.map((name) => (
          <HeaderField
            key={name}
            name={name}
            value={headers[name]}
            set={(value) => {
              const { [name]: _, ...others } = headers
              change(value === undefined ? others : { ...others, [name]: value })
            }}
          />
        ))}
      </div>
      {error !== undefined && (
        <Text size="sm" c="var(--refused)">
          {error}
        </Text>
      )}
    </Stack>
  )
}

interface HeaderFieldProps {
  readonly name: RepairHeader
  readonly value: string | null | undefined
  readonly set: (value: string | null | undefined) => void
}

const RULES = [
  { value: 'keep', label: 'As it is' },
  { value: 'set', label: 'Set to' },
  { value: 'empty', label: 'Empty' },
]

function HeaderField({ name, value, set }: HeaderFieldProps) {
  const rule = value === undefined ? 'keep' : value === null ? 'empty' : 'set'
  return (
    <Group gap="xs" wrap="nowrap" align="flex-end">
      <NativeSelect
        size="xs"
        label={TITLES[name]}
        data={RULES}
        value={rule}
        onChange={(event) => {
          const chosen = event.currentTarget.value
          set(chosen === 'keep' ? undefined : chosen === 'empty' ? null : '')
        }}
      />
      {typeof value === 'string' && (
        <TextInput
          size="xs"
          aria-label={`${TITLES[name]} to set`}
          value={value}
          onChange={(event) => set(event.currentTarget.value)}
        />
      )}
    </Group>
  )
}

const TITLES: Readonly<Record<RepairHeader, string>> = {
  encoding: 'Encoding',
  kind: 'Kind',
  reference: 'Reference',
}
