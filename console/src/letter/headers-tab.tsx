/** What came with the message. */
import { Table, Text } from '@mantine/core'
import { useMemo } from 'react'
import type { LetterDetail } from '../api/types.ts'
import { headerRows } from './headers.ts'
import { PayloadView } from './payload-view.tsx'

export function HeadersTab({ letter: { headers, headersEncoding } }: { readonly letter: LetterDetail }) {
  const rows = useMemo(() => headerRows(headers), [headers])
  if (headers === null || rows?.length === 0) return <Text size="sm">No headers.</Text>
  if (rows === null) {
    const isText = typeof headers === 'string'
    return (
      <PayloadView
        text={isText ? headers : JSON.stringify(headers, null, 2)}
        encoding={headersEncoding === 'base64' ? 'base64' : 'utf8'}
        label="Headers"
      />
    )
  }
  return (
    <Table aria-label="Headers" verticalSpacing={4} fz="sm">
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Name</Table.Th>
          <Table.Th scope="col">Value</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map(({ name, value }, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a name may come more than once
          <Table.Tr key={place}>
            <Table.Td className="header-name">{name}</Table.Td>
            <Table.Td>
              <pre className="bytes">{value}</pre>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  )
}
