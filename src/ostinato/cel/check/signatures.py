"""Signatures of the functions of Kubernetes' CEL: names, overloads, types.

A line is an overload: name, parameters and result. A type before a dot is the receiver. Single capital letters are type
parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ostinato.cel.types import BOOL, SIMPLE, Type, parse_type, split_parameters

_TABLE: Final = """
logical_not: !_(bool) -> bool
negate_double: -_(double) -> double
negate_int64: -_(int) -> int
in_list: @in(A, list(A)) -> bool
in_map: @in(A, map(A, B)) -> bool
not_strictly_false: @not_strictly_false(bool) -> bool
list_int_sortByAssociatedKeys: list(T).@sortByAssociatedKeys(list(int)) -> list(T)
list_uint_sortByAssociatedKeys: list(T).@sortByAssociatedKeys(list(uint)) -> list(T)
list_double_sortByAssociatedKeys: list(T).@sortByAssociatedKeys(list(double)) -> list(T)
list_bool_sortByAssociatedKeys: list(T).@sortByAssociatedKeys(list(bool)) -> list(T)
list_google.protobuf.Duration_sortByAssociatedKeys: list(T).@sortByAssociatedKeys(list(duration)) -> list(T)
list_google.protobuf.Timestamp_sortByAssociatedKeys: list(T).@sortByAssociatedKeys(list(timestamp)) -> list(T)
list_string_sortByAssociatedKeys: list(T).@sortByAssociatedKeys(list(string)) -> list(T)
list_bytes_sortByAssociatedKeys: list(T).@sortByAssociatedKeys(list(bytes)) -> list(T)
not_equals: _!=_(A, A) -> bool
modulo_int64: _%_(int, int) -> int
modulo_uint64: _%_(uint, uint) -> uint
logical_and: _&&_(bool, bool) -> bool
multiply_double: _*_(double, double) -> double
multiply_int64: _*_(int, int) -> int
multiply_uint64: _*_(uint, uint) -> uint
add_bytes: _+_(bytes, bytes) -> bytes
add_double: _+_(double, double) -> double
add_duration_duration: _+_(duration, duration) -> duration
add_duration_timestamp: _+_(duration, timestamp) -> timestamp
add_timestamp_duration: _+_(timestamp, duration) -> timestamp
add_int64: _+_(int, int) -> int
add_list: _+_(list(A), list(A)) -> list(A)
add_string: _+_(string, string) -> string
add_uint64: _+_(uint, uint) -> uint
subtract_double: _-_(double, double) -> double
subtract_duration_duration: _-_(duration, duration) -> duration
subtract_int64: _-_(int, int) -> int
subtract_timestamp_duration: _-_(timestamp, duration) -> timestamp
subtract_timestamp_timestamp: _-_(timestamp, timestamp) -> duration
subtract_uint64: _-_(uint, uint) -> uint
divide_double: _/_(double, double) -> double
divide_int64: _/_(int, int) -> int
divide_uint64: _/_(uint, uint) -> uint
equals: _==_(A, A) -> bool
select_optional_field: _?._(dyn, string) -> optional_type(V)
conditional: _?_:_(bool, A, A) -> A
list_optindex_optional_int: _[?_](list(V), int) -> optional_type(V)
optional_list_optindex_optional_int: _[?_](optional_type(list(V)), int) -> optional_type(V)
map_optindex_optional_value: _[?_](map(K, V), K) -> optional_type(V)
optional_map_optindex_optional_value: _[?_](optional_type(map(K, V)), K) -> optional_type(V)
index_list: _[_](list(A), int) -> A
index_map: _[_](map(A, B), A) -> B
optional_list_index_int: _[_](optional_type(list(V)), int) -> optional_type(V)
optional_map_index_value: _[_](optional_type(map(K, V)), K) -> optional_type(V)
logical_or: _||_(bool, bool) -> bool
quantity_add: kubernetes.Quantity.add(kubernetes.Quantity) -> kubernetes.Quantity
quantity_add_int: kubernetes.Quantity.add(int) -> kubernetes.Quantity
decision_allowed: authz.Decision.allowed() -> bool
quantity_get_float: kubernetes.Quantity.asApproximateFloat() -> double
quantity_get_int: kubernetes.Quantity.asInteger() -> int
bool_to_bool: bool(bool) -> bool
string_to_bool: bool(string) -> bool
bytes_to_bytes: bytes(bytes) -> bytes
string_to_bytes: bytes(string) -> bytes
@mapInsert_map_key_value: cel.@mapInsert(map(K, V), K, V) -> map(K, V)
@mapInsert_map_map: cel.@mapInsert(map(K, V), map(K, V)) -> map(K, V)
string_char_at_int: string.charAt(int) -> string
pathcheck_check: authz.PathCheck.check(string) -> authz.Decision
resourcecheck_check: authz.ResourceCheck.check(string) -> authz.Decision
string_to_cidr: cidr(string) -> net.CIDR
quantity_compare_to: kubernetes.Quantity.compareTo(kubernetes.Quantity) -> int
semver_compare_to: kubernetes.Semver.compareTo(kubernetes.Semver) -> int
contains_string: string.contains(string) -> bool
cidr_contains_cidr_string: net.CIDR.containsCIDR(string) -> bool
cidr_contains_cidr: net.CIDR.containsCIDR(net.CIDR) -> bool
cidr_contains_ip_string: net.CIDR.containsIP(string) -> bool
cidr_contains_ip_ip: net.CIDR.containsIP(net.IP) -> bool
list_distinct: list(T).distinct() -> list(T)
double_to_double: double(double) -> double
int64_to_double: double(int) -> double
string_to_double: double(string) -> double
uint64_to_double: double(uint) -> double
duration_to_duration: duration(duration) -> duration
int64_to_duration: duration(int) -> duration
string_to_duration: duration(string) -> duration
to_dyn: dyn(A) -> dyn
ends_with_string: string.endsWith(string) -> bool
decision_error: authz.Decision.error() -> string
decision_errored: authz.Decision.errored() -> bool
ip_family: net.IP.family() -> int
authorizer_fieldselector: authz.ResourceCheck.fieldSelector(string) -> authz.ResourceCheck
string_find_string: string.find(string) -> string
string_find_all_string: string.findAll(string) -> list(string)
string_find_all_string_int: string.findAll(string, int) -> list(string)
list_first: list(V).first() -> optional_type(V)
list_flatten: list(list(T)).flatten() -> list(T)
list_flatten_int: list(dyn).flatten(int) -> list(dyn)
string_format: string.format(list(dyn)) -> string
format.byte: format.byte() -> kubernetes.NamedFormat
format.date: format.date() -> kubernetes.NamedFormat
format.datetime: format.datetime() -> kubernetes.NamedFormat
format.dns1035Label: format.dns1035Label() -> kubernetes.NamedFormat
format.dns1035LabelPrefix: format.dns1035LabelPrefix() -> kubernetes.NamedFormat
format.dns1123Label: format.dns1123Label() -> kubernetes.NamedFormat
format.dns1123LabelPrefix: format.dns1123LabelPrefix() -> kubernetes.NamedFormat
format.dns1123Subdomain: format.dns1123Subdomain() -> kubernetes.NamedFormat
format.dns1123SubdomainPrefix: format.dns1123SubdomainPrefix() -> kubernetes.NamedFormat
format.labelValue: format.labelValue() -> kubernetes.NamedFormat
format-named: format.named(string) -> optional_type(kubernetes.NamedFormat)
format.qualifiedName: format.qualifiedName() -> kubernetes.NamedFormat
format.uri: format.uri() -> kubernetes.NamedFormat
format.uuid: format.uuid() -> kubernetes.NamedFormat
timestamp_to_day_of_month_1_based: timestamp.getDate() -> int
timestamp_to_day_of_month_1_based_with_tz: timestamp.getDate(string) -> int
timestamp_to_day_of_month: timestamp.getDayOfMonth() -> int
timestamp_to_day_of_month_with_tz: timestamp.getDayOfMonth(string) -> int
timestamp_to_day_of_week: timestamp.getDayOfWeek() -> int
timestamp_to_day_of_week_with_tz: timestamp.getDayOfWeek(string) -> int
timestamp_to_day_of_year: timestamp.getDayOfYear() -> int
timestamp_to_day_of_year_with_tz: timestamp.getDayOfYear(string) -> int
url_get_escaped_path: kubernetes.URL.getEscapedPath() -> string
timestamp_to_year: timestamp.getFullYear() -> int
timestamp_to_year_with_tz: timestamp.getFullYear(string) -> int
url_get_host: kubernetes.URL.getHost() -> string
url_get_hostname: kubernetes.URL.getHostname() -> string
timestamp_to_hours: timestamp.getHours() -> int
timestamp_to_hours_with_tz: timestamp.getHours(string) -> int
duration_to_hours: duration.getHours() -> int
timestamp_to_milliseconds: timestamp.getMilliseconds() -> int
timestamp_to_milliseconds_with_tz: timestamp.getMilliseconds(string) -> int
duration_to_milliseconds: duration.getMilliseconds() -> int
timestamp_to_minutes: timestamp.getMinutes() -> int
timestamp_to_minutes_with_tz: timestamp.getMinutes(string) -> int
duration_to_minutes: duration.getMinutes() -> int
timestamp_to_month: timestamp.getMonth() -> int
timestamp_to_month_with_tz: timestamp.getMonth(string) -> int
url_get_port: kubernetes.URL.getPort() -> string
url_get_query: kubernetes.URL.getQuery() -> map(string, list(string))
url_get_scheme: kubernetes.URL.getScheme() -> string
timestamp_to_seconds: timestamp.getSeconds() -> int
timestamp_to_seconds_tz: timestamp.getSeconds(string) -> int
duration_to_seconds: duration.getSeconds() -> int
authorizer_group: authz.Authorizer.group(string) -> authz.GroupCheck
optional_hasValue: optional_type(V).hasValue() -> bool
list_a_index_of_int: list(A).indexOf(A) -> int
string_index_of_string: string.indexOf(string) -> int
string_index_of_string_int: string.indexOf(string, int) -> int
int64_to_int64: int(int) -> int
double_to_int64: int(double) -> int
duration_to_int64: int(duration) -> int
string_to_int64: int(string) -> int
timestamp_to_int64: int(timestamp) -> int
uint64_to_int64: int(uint) -> int
string_to_ip: ip(string) -> net.IP
cidr_ip: net.CIDR.ip() -> net.IP
ip_is_canonical: ip.isCanonical(string) -> bool
is_cidr: isCIDR(string) -> bool
ip_is_global_unicast: net.IP.isGlobalUnicast() -> bool
quantity_is_greater_than: kubernetes.Quantity.isGreaterThan(kubernetes.Quantity) -> bool
semver_is_greater_than: kubernetes.Semver.isGreaterThan(kubernetes.Semver) -> bool
is_ip: isIP(string) -> bool
quantity_is_integer: kubernetes.Quantity.isInteger() -> bool
quantity_is_less_than: kubernetes.Quantity.isLessThan(kubernetes.Quantity) -> bool
semver_is_less_than: kubernetes.Semver.isLessThan(kubernetes.Semver) -> bool
ip_is_link_local_multicast: net.IP.isLinkLocalMulticast() -> bool
ip_is_link_local_unicast: net.IP.isLinkLocalUnicast() -> bool
ip_is_loopback: net.IP.isLoopback() -> bool
is_quantity_string: isQuantity(string) -> bool
is_semver_string: isSemver(string) -> bool
is_semver_string_bool: isSemver(string, bool) -> bool
list_int_is_sorted_bool: list(int).isSorted() -> bool
list_uint_is_sorted_bool: list(uint).isSorted() -> bool
list_double_is_sorted_bool: list(double).isSorted() -> bool
list_bool_is_sorted_bool: list(bool).isSorted() -> bool
list_duration_is_sorted_bool: list(duration).isSorted() -> bool
list_timestamp_is_sorted_bool: list(timestamp).isSorted() -> bool
list_string_is_sorted_bool: list(string).isSorted() -> bool
list_bytes_is_sorted_bool: list(bytes).isSorted() -> bool
is_url_string: isURL(string) -> bool
ip_is_unspecified: net.IP.isUnspecified() -> bool
list_join: list(string).join() -> string
list_join_string: list(string).join(string) -> string
string_jsonpatch_escapeKey_string: jsonpatch.escapeKey(string) -> string
authorizer_labelselector: authz.ResourceCheck.labelSelector(string) -> authz.ResourceCheck
list_last: list(V).last() -> optional_type(V)
list_a_last_index_of_int: list(A).lastIndexOf(A) -> int
string_last_index_of_string: string.lastIndexOf(string) -> int
string_last_index_of_string_int: string.lastIndexOf(string, int) -> int
lists_range: lists.range(int) -> list(int)
string_lower_ascii: string.lowerAscii() -> string
semver_major: kubernetes.Semver.major() -> int
cidr_masked: net.CIDR.masked() -> net.CIDR
matches: matches(string, string) -> bool
matches_string: string.matches(string) -> bool
list_int_max_int: list(int).max() -> int
list_uint_max_uint: list(uint).max() -> uint
list_double_max_double: list(double).max() -> double
list_bool_max_bool: list(bool).max() -> bool
list_duration_max_duration: list(duration).max() -> duration
list_timestamp_max_timestamp: list(timestamp).max() -> timestamp
list_string_max_string: list(string).max() -> string
list_bytes_max_bytes: list(bytes).max() -> bytes
list_int_min_int: list(int).min() -> int
list_uint_min_uint: list(uint).min() -> uint
list_double_min_double: list(double).min() -> double
list_bool_min_bool: list(bool).min() -> bool
list_duration_min_duration: list(duration).min() -> duration
list_timestamp_min_timestamp: list(timestamp).min() -> timestamp
list_string_min_string: list(string).min() -> string
list_bytes_min_bytes: list(bytes).min() -> bytes
semver_minor: kubernetes.Semver.minor() -> int
resourcecheck_name: authz.ResourceCheck.name(string) -> authz.ResourceCheck
resourcecheck_namespace: authz.ResourceCheck.namespace(string) -> authz.ResourceCheck
optional_none: optional.none() -> optional_type(V)
optional_of: optional.of(V) -> optional_type(V)
optional_ofNonZeroValue: optional.ofNonZeroValue(V) -> optional_type(V)
optional_unwrap: optional.unwrap(list(optional_type(V))) -> list(V)
optional_or_optional: optional_type(V).or(optional_type(V)) -> optional_type(V)
optional_orValue_value: optional_type(V).orValue(V) -> V
semver_patch: kubernetes.Semver.patch() -> int
authorizer_path: authz.Authorizer.path(string) -> authz.PathCheck
cidr_prefix_length: net.CIDR.prefixLength() -> int
string_to_quantity: quantity(string) -> kubernetes.Quantity
decision_reason: authz.Decision.reason() -> string
string_replace_string_string: string.replace(string, string) -> string
string_replace_string_string_int: string.replace(string, string, int) -> string
groupcheck_resource: authz.GroupCheck.resource(string) -> authz.ResourceCheck
list_reverse: list(T).reverse() -> list(T)
string_to_semver: semver(string) -> kubernetes.Semver
string_bool_to_semver: semver(string, bool) -> kubernetes.Semver
authorizer_serviceaccount: authz.Authorizer.serviceAccount(string, string) -> authz.Authorizer
list_sets_contains_list: sets.contains(list(T), list(T)) -> bool
list_sets_equivalent_list: sets.equivalent(list(T), list(T)) -> bool
list_sets_intersects_list: sets.intersects(list(T), list(T)) -> bool
quantity_sign: sign(kubernetes.Quantity) -> int
size_bytes: size(bytes) -> int
bytes_size: bytes.size() -> int
size_list: size(list(A)) -> int
list_size: list(A).size() -> int
size_map: size(map(A, B)) -> int
map_size: map(A, B).size() -> int
size_string: size(string) -> int
string_size: string.size() -> int
list_slice: list(T).slice(int, int) -> list(T)
list_int_sort: list(int).sort() -> list(int)
list_uint_sort: list(uint).sort() -> list(uint)
list_double_sort: list(double).sort() -> list(double)
list_bool_sort: list(bool).sort() -> list(bool)
list_google.protobuf.Duration_sort: list(duration).sort() -> list(duration)
list_google.protobuf.Timestamp_sort: list(timestamp).sort() -> list(timestamp)
list_string_sort: list(string).sort() -> list(string)
list_bytes_sort: list(bytes).sort() -> list(bytes)
string_split_string: string.split(string) -> list(string)
string_split_string_int: string.split(string, int) -> list(string)
starts_with_string: string.startsWith(string) -> bool
string_to_string: string(string) -> string
bool_to_string: string(bool) -> string
bytes_to_string: string(bytes) -> string
double_to_string: string(double) -> string
duration_to_string: string(duration) -> string
int64_to_string: string(int) -> string
timestamp_to_string: string(timestamp) -> string
uint64_to_string: string(uint) -> string
ip_to_string: string(net.IP) -> string
cidr_to_string: string(net.CIDR) -> string
strings_quote: strings.quote(string) -> string
quantity_sub: kubernetes.Quantity.sub(kubernetes.Quantity) -> kubernetes.Quantity
quantity_sub_int: kubernetes.Quantity.sub(int) -> kubernetes.Quantity
resourcecheck_subresource: authz.ResourceCheck.subresource(string) -> authz.ResourceCheck
string_substring_int: string.substring(int) -> string
string_substring_int_int: string.substring(int, int) -> string
list_int_sum_int: list(int).sum() -> int
list_uint_sum_uint: list(uint).sum() -> uint
list_double_sum_double: list(double).sum() -> double
list_duration_sum_duration: list(duration).sum() -> duration
timestamp_to_timestamp: timestamp(timestamp) -> timestamp
int64_to_timestamp: timestamp(int) -> timestamp
string_to_timestamp: timestamp(string) -> timestamp
string_trim: string.trim() -> string
type: type(A) -> type(A)
uint64_to_uint64: uint(uint) -> uint
double_to_uint64: uint(double) -> uint
int64_to_uint64: uint(int) -> uint
string_to_uint64: uint(string) -> uint
optional_unwrapOpt: list(optional_type(V)).unwrapOpt() -> list(V)
string_upper_ascii: string.upperAscii() -> string
string_to_url: url(string) -> kubernetes.URL
format-validate: kubernetes.NamedFormat.validate(string) -> optional_type(list(string))
optional_value: optional_type(V).value() -> V
"""
_COMPARISONS: Final = {"_<_": "less", "_<=_": "less_equals", "_>_": "greater", "_>=_": "greater_equals"}
_COMPARED: Final = (
    ("bool", "bool"), ("int", "int"), ("int", "double"), ("int", "uint"), ("uint", "uint"), ("uint", "double"),
    ("uint", "int"), ("double", "double"), ("double", "int"), ("double", "uint"), ("string", "string"),
    ("bytes", "bytes"), ("timestamp", "timestamp"), ("duration", "duration"),
)  # fmt: skip
_SIZED: Final = {"int": "int64", "uint": "uint64"}


class Overload(NamedTuple):
    id: str
    member: bool
    args: tuple[Type, ...]
    result: Type


def _read() -> dict[str, list[Overload]]:
    found: dict[str, list[Overload]] = {}
    for line in _TABLE.strip().splitlines():
        name, _, rest = line.partition(": ")
        call, _, result = rest.rpartition(" -> ")
        head, inner = _opened(call)
        target, function = _member(head)
        args = [parse_type(part) for part in split_parameters(inner)]
        if target:
            args.insert(0, parse_type(target))
        found.setdefault(function, []).append(Overload(name, bool(target), tuple(args), parse_type(result)))
    for function, word in _COMPARISONS.items():
        found[function] = [_comparison(word, left, right) for left, right in _COMPARED]
    return found


def _comparison(word: str, left: str, right: str) -> Overload:
    name = f"{word}_{_SIZED.get(left, left)}" + (f"_{_SIZED.get(right, right)}" if left != right else "")
    return Overload(name, member=False, args=(SIMPLE[left], SIMPLE[right]), result=BOOL)


def _opened(call: str) -> tuple[str, str]:
    """Return the text before the last outer pair of brackets, and its contents."""
    depth = 0
    for i in range(len(call) - 1, -1, -1):
        depth += (call[i] == ")") - (call[i] == "(")
        if depth == 0:
            return call[:i], call[i + 1 : -1]
    raise ValueError(call)


def _member(head: str) -> tuple[str, str]:
    """Return the receiver type, if there is one, and the name of a function."""
    target, _, function = head.rpartition(".")
    if target.endswith(")") or target in SIMPLE or target.startswith(("kubernetes.", "authz.", "net.")):
        return target, function
    return "", head


FUNCTIONS: Final[Mapping[str, list[Overload]]] = _read()
